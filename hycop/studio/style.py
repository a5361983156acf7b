"""How the page looks: colours of a light and a dark page, cards, and names for what screen readers meet."""

from __future__ import annotations

PALETTE = """
:root { --hy-page: #f6f8fa; --hy-card: #ffffff; --hy-ink: #1f2328; --hy-soft: #59636e; --hy-line: #d0d7de;
  --hy-accent: #0a5c9e; --hy-on-accent: #ffffff; --hy-bad: #a40e26; --hy-bad-back: #fff0ee; --hy-good: #1a6b32;
  --hy-good-back: #e6f6ea; --hy-warn: #7a4d00; --hy-warn-back: #fff4d6; --hy-field: #ffffff; --hy-invert: 0;
  color-scheme: light; }
@media (prefers-color-scheme: dark) {
:root { --hy-page: #0d1117; --hy-card: #161b22; --hy-ink: #e6edf3; --hy-soft: #a6b0bb; --hy-line: #444c56;
  --hy-accent: #79b8ff; --hy-on-accent: #0d1117; --hy-bad: #ffb3ad; --hy-bad-back: #4a1514; --hy-good: #8ddb9f;
  --hy-good-back: #12331d; --hy-warn: #f2cc60; --hy-warn-back: #3b2e04; --hy-field: #0d1117; --hy-invert: 1;
  color-scheme: dark; }
}
html, body { margin: 0; background: var(--hy-page); color: var(--hy-ink); font: 15px/1.45 system-ui, sans-serif; }
header { padding: 10px 20px; background: var(--hy-card); border-bottom: 1px solid var(--hy-line); }
header h1 { margin: 0; font-size: 19px; display: inline; }
header p { margin: 0 0 0 14px; color: var(--hy-soft); display: inline; }
main { padding: 12px 20px 30px; }
"""

WIDGET = """
:host { color: var(--hy-ink, inherit); font-size: 14px; }
label, .bk-slider-title, .bk-input-group > label { color: var(--hy-ink, inherit) !important; font-size: 13px; }
.bk-input, input, select { background-color: var(--hy-field, #fff) !important; color: var(--hy-ink, #111) !important;
  border: 1px solid var(--hy-line, #bbb) !important; font-size: 14px !important; }
.bk-input:focus-visible, .noUi-handle:focus-visible, .bk-btn:focus-visible {
  outline: 3px solid var(--hy-accent, #0a5c9e) !important; outline-offset: 1px; }
.bk-btn { background: var(--hy-card, #fff) !important; color: var(--hy-ink, #111) !important;
  border: 1px solid var(--hy-line, #bbb) !important; font-size: 13px !important; }
.bk-btn.bk-active, .bk-btn-primary { background: var(--hy-accent, #0a5c9e) !important;
  color: var(--hy-on-accent, #fff) !important; border-color: var(--hy-accent, #0a5c9e) !important; }
select.bk-input { background-image: none !important; appearance: auto !important; }
.bk-spin-btn { filter: invert(var(--hy-invert, 0)); }
input::file-selector-button { background: var(--hy-card, #fff); color: var(--hy-ink, #111);
  border: 1px solid var(--hy-line, #bbb); border-radius: 4px; padding: 4px 10px; }
.bk-btn[disabled] { opacity: 0.6; }
.noUi-connect, .noUi-connects { background-color: var(--hy-line, #ccc) !important; }
.noUi-connect { background-color: var(--hy-accent, #0a5c9e) !important; }
.noUi-handle { background-color: var(--hy-card, #fff) !important; box-shadow: none !important;
  border: 2px solid var(--hy-accent, #0a5c9e) !important; }
"""

BESIDE = """
.bk-input-group { display: flex; flex-direction: row; align-items: center; justify-content: space-between; gap: 8px; }
.bk-input-group > label { flex: 1 1 auto; }
.bk-input-group > .bk-input-container, .bk-input-group > .bk-spin-wrapper, .bk-input-group > div {
  flex: 0 0 104px; width: 104px; }
.bk-input { height: 28px !important; padding: 2px 8px !important; }
"""
"""A number field to the right of its label."""

UNTITLED = """
.bk-slider-title { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
"""
"""A slider whose title only screen readers meet."""

CARD = """
:host { background: var(--hy-card, #fff); border: 1px solid var(--hy-line, #ccc); border-radius: 8px;
  padding: 10px 14px; box-sizing: border-box; }
"""

TEXT = """
:host { color: var(--hy-ink, inherit); font-size: 14px; }
h2 { font-size: 15px; margin: 0; color: var(--hy-ink, inherit); }
p { margin: 2px 0; }
.help { color: var(--hy-soft, #555); font-size: 13px; }
.alert, .warn, .good { padding: 5px 10px; border-radius: 6px; }
.alert { background: var(--hy-bad-back, #fff0ee); color: var(--hy-bad, #a40e26); }
.warn { background: var(--hy-warn-back, #fff4d6); color: var(--hy-warn, #7a4d00); }
.good { background: var(--hy-good-back, #e6f6ea); color: var(--hy-good, #1a6b32); }
.facts { display: flex; flex-wrap: wrap; gap: 6px 26px; align-items: baseline; }
.facts b { font-size: 17px; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th { text-align: left; font-weight: 600; border-bottom: 2px solid var(--hy-line, #ccc); padding: 4px 8px 4px 0; }
td { border-bottom: 1px solid var(--hy-line, #ccc); padding: 5px 8px 5px 0; }
th.number, td.number { text-align: right; font-variant-numeric: tabular-nums; }
tr.shown td { font-weight: 700; }
.bar { display: inline-block; height: 9px; background: var(--hy-accent, #0a5c9e); border-radius: 2px;
  vertical-align: middle; }
"""

NAMES_FOR_READERS = """
// Sliders and number fields of the widget library have no names of their own: give them those that stand beside them.
(() => {
  const NAMELESS = '.noUi-handle, input, select, textarea';
  const text = (node) => (node && node.textContent || '').replace(/\\s+/g, ' ').replace(/:\\s*$/, '').trim();
  const beside = (root) => {
    for (let at = root; at; at = at.host && at.host.getRootNode()) {
      const found = at.querySelector && at.querySelector('.bk-slider-title, label');
      if (text(found)) return text(found);
      const above = at.host && at.host.previousElementSibling && at.host.previousElementSibling.shadowRoot;
      if (text(above && above.querySelector('.bk-clearfix'))) return text(above.querySelector('.bk-clearfix'));
    }
    return '';
  };
  const visit = (root) => {
    for (const node of root.querySelectorAll('*')) {
      if (node.matches(NAMELESS) && !node.getAttribute('aria-label')) {
        const own = node.id && root.querySelector(`label[for="${node.id}"]`);
        const fixed = { file: 'dataset to upload', checkbox: text(root.querySelector('.bk-label')) }[node.type];
        const name = fixed || text(own) || beside(root);
        if (name) node.setAttribute('aria-label', name);
      }
      if (node.matches('.bk-spin-btn') && !node.getAttribute('aria-label')) {
        node.setAttribute('aria-label', node.matches('.bk-spin-btn-up') ? 'increase' : 'decrease');
        node.tabIndex = -1;  // the arrow keys do the same
      }
      if (node.shadowRoot) visit(node.shadowRoot);
    }
  };
  setInterval(() => visit(document), 500);
})();
"""

TEMPLATE = (
    """
{% block postamble %}
<style>"""
    + PALETTE
    + """</style>
<link rel="icon" href="data:,">
{% endblock %}
{% block contents %}
<header><h1>HyCOP studio</h1><p>{{ about | e }}</p></header>
<main>{% for root in roots %}{{ embed(root) }}{% endfor %}</main>
<script>"""
    + NAMES_FOR_READERS
    + """</script>
{% endblock %}
"""
)
"""The page around the widgets. Its scripts and styles are served by the studio itself."""
