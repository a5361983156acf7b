/* Gives the state back as it came, or commits the fault whose number is its last argument. With --serve it takes
 * requests from standard input, and finds the number as the second value of the second array. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *output;

static void give(const char *bytes, uint64_t size, uint64_t announced) {
    FILE *file = output ? fopen(output, "wb") : stdout;
    if (!output) fwrite(&announced, 8, 1, file);
    fwrite(bytes, 1, size, file);
    fflush(file);
    if (output) fclose(file);
}

static void edit(char *bytes, uint64_t size, const char *from, const char *to) {
    for (uint64_t i = 0; i + strlen(from) < size; i++)
        if (!memcmp(bytes + i, from, strlen(from))) memcpy(bytes + i, to, strlen(to));
}

static void answer(char *bytes, uint64_t size, int fault) {
    double nan = 0.0 / 0.0;
    char *huge;
    switch (fault) {
    case 1: fprintf(stderr, "no convergence\n"); exit(7);
    case 2: abort();
    case 3: raise(SIGSEGV); break;
    case 4: for (;;) pause();
    case 5: kill(getpid(), SIGKILL); break;
    case 6: exit(0);
    case 7: edit(bytes, size, "(1, 6, 5)", "(1, 5, 6)"); break;
    case 8: memcpy(bytes + size - 8, &nan, 8); break;
    case 9: memset(bytes, 'x', size); break;
    case 10: give(bytes, size - 8, size); exit(0);
    case 11: edit(bytes, size, "(1, 6, 5), ", "(9999999999"); break;
    case 12: edit(bytes, size, "<f8", "|O8"); break;
    case 13: edit(bytes, size, "<f8", "<c8"); break;
    case 14: huge = calloc(1, 1 << 24); give(huge, 1 << 24, (uint64_t)1 << 62); break;
    case 15: /* more memory than it may have, touched so that it counts */
        for (;;) { if (!(huge = malloc(1 << 24))) exit(9); memset(huge, 1, 1 << 24); }
    case 16: if (!fork()) for (;;) pause(); exit(5);
    case 17: if (!fork()) { setpgid(0, 0); for (;;) pause(); } kill(getpid(), SIGKILL); break;
    case 18: if (output && mkfifo(output, 0600) == 0) exit(0); close(1); for (;;) pause();
    case 19: if (output && symlink("/dev/zero", output) == 0) exit(0); give(bytes, size, 3); exit(0);
    }
    if (fault != 14) give(bytes, size, size);
}

int main(int argc, char **argv) {
    static char state[1 << 16], numbers[1 << 16];
    uint64_t size, more;
    double value;
    if (argc == 2) {
        while (fread(&size, 8, 1, stdin) == 1 && fread(state, 1, size, stdin) == size) {
            if (fread(&more, 8, 1, stdin) != 1 || fread(numbers, 1, more, stdin) != more) exit(1);
            memcpy(&value, numbers + more - 8, 8);
            answer(state, size, (int)value);
        }
        return 0;
    }
    output = argv[2];
    FILE *file = fopen(argv[1], "rb");
    size = fread(state, 1, sizeof state, file);
    answer(state, size, atoi(argv[argc - 1]));
    return 0;
}
