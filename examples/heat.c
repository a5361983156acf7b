/* Diffusion u_t = Dx u_xx + Dy u_yy on a periodic box, by explicit Euler steps: a program that HyCOP can drive.
 *
 *   cc -O2 -o heat heat.c
 *   heat INPUT.npy OUTPUT.npy duration length_x length_y Dx Dy     one state, from file to file
 *   heat --serve                                                   states from standard input to standard output
 *
 * Served, each array is preceded by its number of bytes (8 bytes, little-endian): in come the state and the five
 * numbers, out goes the new state. Arrays are float64 in NumPy's .npy format. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char *message) { fprintf(stderr, "heat: %s\n", message); exit(3); }

static void *allocated(size_t bytes) {
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory) fail("out of memory");
    return memory;
}

/* The values of a .npy array in memory, and its shape. The header is a Python dictionary as text. */
static double *values_of(unsigned char *bytes, size_t size, long shape[3], int *axes) {
    if (size < 10 || memcmp(bytes, "\x93NUMPY\x01", 7)) fail("the input is not a .npy array of version 1");
    size_t header = bytes[8] + 256u * bytes[9], count = 1;
    if (10 + header > size) fail("the header is cut off");
    char text[1024];
    if (header >= sizeof text) fail("the header is too long");
    memcpy(text, bytes + 10, header);
    text[header] = 0;
    if (!strstr(text, "<f8") || strstr(text, "'fortran_order': True")) fail("float64 in C order is needed");
    char *at = strstr(text, "'shape': (");
    if (!at) fail("the header has no shape");
    for (at += 10, *axes = 0; *axes < 3 && *at && *at != ')';) {
        shape[*axes] = strtol(at, &at, 10);
        count *= shape[(*axes)++];
        while (*at == ',' || *at == ' ') at++;
    }
    if (size - 10 - header != 8 * count) fail("the data are cut off");
    return (double *)(bytes + 10 + header); /* NumPy pads the header so that the data are aligned */
}

static void heat(double *u, const long shape[3], const double *number) {
    long n = shape[1], m = shape[2], cells = n * m;
    double dx = number[1] / n, dy = number[2] / m, a = number[3] / (dx * dx), b = number[4] / (dy * dy);
    long steps = (long)(number[0] * 2 * (a + b) / 0.25) + 1; /* a quarter of what is stable */
    double dt = number[0] / steps, *old = allocated(8 * cells);
    for (long c = 0; c < shape[0]; c++, u += cells)
        for (long s = 0; s < steps; s++) {
            memcpy(old, u, 8 * cells);
            for (long i = 0; i < n; i++)
                for (long j = 0; j < m; j++) {
                    long here = i * m + j, up = (i + 1) % n * m + j, down = (i + n - 1) % n * m + j;
                    long right = i * m + (j + 1) % m, left = i * m + (j + m - 1) % m;
                    u[here] += dt * (a * (old[up] - 2 * old[here] + old[down]) +
                                     b * (old[right] - 2 * old[here] + old[left]));
                }
        }
    free(old);
}

/* The next array of standard input, or none at its end. */
static unsigned char *received(uint64_t *size) {
    if (fread(size, 8, 1, stdin) != 1) return NULL;
    unsigned char *bytes = allocated(*size);
    if (fread(bytes, 1, *size, stdin) != *size) fail("a request is cut off");
    return bytes;
}

static void serve(void) {
    uint64_t size, more;
    for (unsigned char *state; (state = received(&size));) {
        unsigned char *numbers = received(&more);
        long shape[3], five[3];
        int axes, one;
        double *u = values_of(state, size, shape, &axes);
        if (!numbers || axes != 3) fail("a state (channel, x, y) and five numbers are needed");
        heat(u, shape, values_of(numbers, more, five, &one));
        fwrite(&size, 8, 1, stdout);
        fwrite(state, 1, size, stdout); /* the header stays as it came */
        fflush(stdout);
        free(state);
        free(numbers);
    }
}

int main(int argc, char **argv) {
    if (argc == 2 && !strcmp(argv[1], "--serve")) return serve(), 0;
    if (argc != 8) fail("usage: heat INPUT OUTPUT duration length_x length_y Dx Dy");
    FILE *file = fopen(argv[1], "rb");
    if (!file) fail("the input cannot be read");
    fseek(file, 0, SEEK_END);
    size_t size = ftell(file);
    rewind(file);
    unsigned char *bytes = allocated(size);
    if (fread(bytes, 1, size, file) != size) fail("the input cannot be read");
    fclose(file);
    long shape[3];
    int axes;
    double number[5], *u = values_of(bytes, size, shape, &axes);
    if (axes != 3) fail("a state (channel, x, y) is needed");
    for (int i = 0; i < 5; i++) number[i] = atof(argv[3 + i]);
    heat(u, shape, number);
    file = fopen(argv[2], "wb");
    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file)) fail("the output cannot be written");
    return 0;
}
