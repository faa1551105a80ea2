"""The frame of a page: style sheet, script and head; tables and lists as HTML."""

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from emulator.analysis.rendering.palette import STYLE
from emulator.base.commit import commit

CALM = "No symptom: nothing here would page anybody."
_STYLE = """
main { max-width: 1400px; margin: 0 auto; }
h2 { border-top: 1px solid var(--line); padding-top: 14px; }
h3 { font-size: 14px; margin: 12px 0 2px; }
ol.severe { padding-left: 22px; margin: 8px 0; }
ol.severe li:first-child { font-size: 16px; font-weight: 600; }
ol.severe li { margin: 3px 0; }
table { border-collapse: collapse; margin: 6px 0; }
th, td { text-align: left; padding: 3px 14px 3px 0; vertical-align: top; border-bottom: 1px solid var(--line); }
th { font-weight: 600; white-space: nowrap; }
th.number { text-align: right; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
dl.story { display: grid; grid-template-columns: max-content 1fr; gap: 2px 16px; margin: 6px 0; }
dl.story dt { color: var(--faint); text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
dl.story dd { margin: 0 0 8px; }
dl.story dd b { display: block; }
pre { overflow-x: auto; background: var(--lane); padding: 10px 12px; border-radius: 6px; font-size: 12px; }
code { background: var(--lane); padding: 0 4px; border-radius: 3px; }
.tools { display: flex; gap: 14px; flex-wrap: wrap; align-items: center; margin: 8px 0; }
.wide { overflow-x: auto; }
.wide svg.chart { max-width: none; }
[data-why] { cursor: pointer; }
#why { position: sticky; bottom: 0; max-height: 45vh; overflow: auto; background: var(--paper);
  border-top: 2px solid var(--ink); padding: 8px 0 10px; }
#why p { white-space: pre-line; color: var(--ink); }
#why button { float: right; }
details { margin: 6px 0; }
summary { cursor: pointer; }
a { color: inherit; }
"""
_SCRIPT = """
const shown = (group) => document.querySelectorAll('[data-group]').forEach(
  (part) => { part.hidden = group !== '' && part.dataset.group !== group; });
const zoom = (times) => document.querySelectorAll('.wide svg.chart').forEach(
  (chart) => { chart.style.width = `${100 * times}%`; });
const report = (part) => {
  const { run, answers } = JSON.parse(document.getElementById('answers').textContent);
  const asked = part.dataset.why;
  document.querySelector('#why p').textContent = part.querySelector('title').textContent;
  document.querySelector('#why code').textContent = `rmqemu why ${run} ${asked}`;
  document.querySelector('#why pre').textContent = answers[asked] ?? 'Type this command to read why.';
  document.getElementById('why').hidden = false;
};
document.querySelectorAll('[data-why]').forEach((part) => part.addEventListener('click', () => report(part)));
document.querySelector('#why button')?.addEventListener('click', (event) => { event.target.parentNode.hidden = true; });
document.getElementById('group')?.addEventListener('change', (event) => shown(event.target.value));
document.getElementById('zoom')?.addEventListener('input', (event) => zoom(event.target.value));
"""


def document(title: str, body: str, style: str = "") -> str:
    """A complete page; it loads nothing."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}{_STYLE}{style}</style></head>"
        f"<body><main>{body}</main><script>{_SCRIPT}</script></body></html>\n"
    )


def section(title: str, *parts: str) -> str:
    """A part of the page; without content there is none."""
    content = "".join(parts)
    return f"<h2>{escape(title)}</h2>{content}" if content else ""


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[str] = ()) -> str:
    """A table of HTML cells; `numbers` are the headings of columns that are aligned to the right."""
    kinds = ["number" if heading in numbers else "" for heading in headings]
    head = "".join(f'<th class="{kind}">{escape(name)}</th>' for kind, name in zip(kinds, headings, strict=True))
    lines = ("".join(f'<td class="{kind}">{cell}</td>' for kind, cell in zip(kinds, row, strict=True)) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>' if body else ""


def folded(summary: str, content: str) -> str:
    """Content that opens with a click."""
    return f"<details><summary>{escape(summary)}</summary>{content}</details>"


def made_by(runs: str) -> str:
    """The foot of a page.

    Args:
        runs: a clause that says which version and commit the runs are of.
    """
    return f"<p>{escape(runs)}; this page was written by commit {escape(commit())}.</p>"


def panel(run: str, answers: Mapping[str, str]) -> str:
    """What opens with a click on a part of a picture that has a question, and the answers that are known.

    Args:
        run: directory of the run, as a word of a shell command.
        answers: mapping question -> answer.
    """
    known = json.dumps({"run": run, "answers": answers}).replace("<", "\\u003c")  # ends no script element
    return (
        '<aside id="why" hidden><button>close</button><p></p><code></code><pre></pre></aside>'
        f'<script type="application/json" id="answers">{known}</script>'
    )


def verbatim(text: str) -> str:
    """Text as it is."""
    return f"<pre>{escape(text)}</pre>"
