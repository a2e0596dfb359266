/** The style of the documentation page, light or dark as in the reader's system, for widths of 320 px and more. */
export const STYLE = `
:root { color-scheme: light dark; --ink: light-dark(#1c2430, #e4e8ee); --soft: light-dark(#5a6473, #9aa5b4);
  --paper: light-dark(#fff, #12161c); --panel: light-dark(#f4f6f8, #1b2129); --line: light-dark(#dde2e8, #2d3540);
  --link: light-dark(#0b57b7, #7db3ff); --get: light-dark(#0a6640, #5fd39b); --post: light-dark(#0b57b7, #7db3ff);
  --patch: light-dark(#8a4b00, #f0b060); --delete: light-dark(#b3261e, #ff8a80) }
* { box-sizing: border-box }
html { scroll-padding-top: 1rem }
header { grid-column: 1 / -1; padding-top: 3rem }
body { margin: 0; font: 1rem/1.6 system-ui, sans-serif; color: var(--ink); background: var(--paper) }
.page { display: grid; grid-template-columns: 16rem minmax(0, 1fr); column-gap: 3rem; max-width: 78rem; margin: auto; padding: 0 1.5rem }
nav { position: sticky; top: 0; align-self: start; max-height: 100vh; overflow: auto; padding: 2rem 0; font-size: .9rem }
nav strong { display: block; margin: 1.25rem 0 .25rem; font-size: .75rem; letter-spacing: .06em; text-transform: uppercase; color: var(--soft) }
nav a { display: block; padding: .2rem 0; color: var(--ink); text-decoration: none }
nav a:hover { color: var(--link) }
main { padding: 0 0 6rem }
main > h2:first-child { margin-top: 2rem }
a { color: var(--link) }
h1 { font-size: 2rem; line-height: 1.2; margin: 0 0 .5rem }
h2 { font-size: 1.5rem; margin: 4rem 0 1rem; padding-bottom: .3rem; border-bottom: 1px solid var(--line) }
h3 { font-size: 1.15rem; margin: 3rem 0 .5rem }
h4 { font-size: .85rem; margin: 1.5rem 0 .4rem; color: var(--soft) }
p { margin: .6rem 0; max-width: 46rem }
code { font: .875em/1.5 ui-monospace, SFMono-Regular, Menlo, monospace; overflow-wrap: anywhere }
pre { margin: .75rem 0; padding: 1rem; overflow-x: auto; background: var(--panel); border: 1px solid var(--line); border-radius: .5rem }
pre code { overflow-wrap: normal }
.listing { position: relative }
.listing button { position: absolute; top: .5rem; right: .5rem; padding: .15rem .6rem; font: .8rem system-ui, sans-serif; color: var(--ink); background: var(--paper); border: 1px solid var(--line); border-radius: .35rem; cursor: pointer }
#search input { width: 100%; padding: .4rem .6rem; font: inherit; color: var(--ink); background: var(--paper); border: 1px solid var(--soft); border-radius: .35rem }
#search output { display: block; min-height: 1.4rem; color: var(--soft) }
fieldset { display: flex; flex-wrap: wrap; gap: 0 .75rem; margin: .5rem 0 0; padding: 0; border: 0 }
legend { padding: 0; color: var(--soft); font-size: .8rem }
[hidden] { display: none !important }
body:has(#in-curl:checked) .in:not(:first-child), body:has(#in-nodejs:checked) .in:not(.nodejs),
body:has(#in-python:checked) .in:not(.python) { display: none }
.wide { overflow-x: auto; margin: .75rem 0 }
table { border-collapse: collapse; width: 100%; font-size: .925rem }
th { text-align: left; font-weight: 600; color: var(--soft); font-size: .8rem }
th, td { padding: .5rem 1rem .5rem 0; border-bottom: 1px solid var(--line); vertical-align: top }
td:first-child { white-space: nowrap; width: 1% }
.verb { font: 700 .8rem ui-monospace, monospace; margin-right: .5rem }
.GET { color: var(--get) } .POST { color: var(--post) } .PATCH { color: var(--patch) } .DELETE { color: var(--delete) }
.soft { color: var(--soft); font-size: .875rem }
.codes > div { padding: 1rem 0; border-bottom: 1px solid var(--line) }
dt { font-weight: 600 } dd { margin: .25rem 0 0; max-width: 46rem }
:target { background: light-dark(#fff6d6, #2e2a17); outline: .4rem solid light-dark(#fff6d6, #2e2a17) }
@media (max-width: 56rem) {
  .page { display: block; padding: 0 1rem }
  nav { position: static; max-height: none; padding: 1.5rem 0 0; columns: 2; column-gap: 1.5rem }
  nav strong { break-after: avoid } header { padding-top: 1.5rem } td:first-child { white-space: normal }
}
`
