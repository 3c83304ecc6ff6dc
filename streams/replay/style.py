"""The style sheet of the HTML report, for light and dark mode."""

STYLE = """
:root { color-scheme: light dark; --text: #1b1b1b; --page: #ffffff; --line: #c4c4c4; --soft: #f3f3f3;
  --drug: #cdeef5; --ade: #ffd3cf; --indication: #d3efcf; --withdrawal: #ffe9a8; --symptom: #ecd7f7;
  --unknown: #e2e2e2; }
@media (prefers-color-scheme: dark) {
  :root { --text: #ececec; --page: #161616; --line: #555555; --soft: #232323;
    --drug: #0f4855; --ade: #6d1f1a; --indication: #1f4d1a; --withdrawal: #574400; --symptom: #4c2460;
    --unknown: #444444; } }
body { margin: 0; background: var(--page); color: var(--text); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 72rem; margin: 0 auto; padding: 1rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1rem; }
dt { font-weight: 600; } dd { margin: 0; overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid var(--line); padding: .35rem .6rem; text-align: left; vertical-align: top; }
article { border: 1px solid var(--line); border-radius: 6px; padding: 0 1rem .5rem; margin: 1rem 0; }
article > h3 { overflow-wrap: anywhere; }
.sides { display: grid; grid-template-columns: repeat(auto-fit, minmax(18rem, 1fr)); gap: 1rem; }
.sides section { background: var(--soft); padding: .25rem .75rem; border-radius: 4px; min-width: 0; }
.text { white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: isolate; }
td, dd, li, h3, blockquote { unicode-bidi: isolate; }
mark { color: inherit; background: var(--unknown); border-bottom: 2px solid currentColor; }
mark.drug { background: var(--drug); } mark.ade { background: var(--ade); }
mark.indication { background: var(--indication); } mark.withdrawal { background: var(--withdrawal); }
mark.symptom { background: var(--symptom); }
mark[data-label]::after { content: " " attr(data-label); font-size: .65em; font-weight: 700; }
"""
