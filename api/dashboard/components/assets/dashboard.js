/** Enhances pages, which all work without it. Readers can pause the refresh of live pages (WCAG 2.2.2). */
/** The media type of a refreshed page (server/fragment.ts). */
const FRAGMENT = 'application/vnd.heliograph.fragment'
const REFRESH_INTERVAL_MS = 5_000
/** How long a button shows its result instead of its label. */
const DONE_SHOWN_MS = 2_000
const RESPONSE_WAIT_MS = 10_000
/** How long a form must be unchanged before its audience is counted or its text is previewed. */
const QUIET_MS = 400
const byId = (id) => document.getElementById(id)
const make = (tag, more) => Object.assign(document.createElement(tag), more)
const zoned = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' })
const clock = (at) => at.toLocaleTimeString('en-GB', { timeStyle: 'long' })
/** From the next page on, the server uses this time zone (server/guard.ts has the name of the cookie). */
const [mark, secure] = location.protocol === 'https:' ? ['__Host-', '; Secure'] : ['', '']
const { timeZone } = zoned.resolvedOptions()
// biome-ignore lint/suspicious/noDocumentCookie: browsers only have the Cookie Store API on https
document.cookie = `${mark}heliograph-zone=${timeZone}; Path=/; SameSite=Lax${secure}`
/** Formats a date like the server (components/cell.ts). */
function formatDay(at) {
  const year = at.getFullYear() === new Date().getFullYear() ? {} : { year: 'numeric' }
  return at.toLocaleDateString('en-GB', { day: 'numeric', month: 'short', ...year })
}
/** Shows times in the reader's zone, with UTC in the tooltip. Ages in lists stay. */
function localTimes(root) {
  for (const time of root.querySelectorAll('time[datetime]')) {
    const at = new Date(time.dateTime)
    const local = zoned.format(at)
    if (time.dataset.short === 'day') time.textContent = formatDay(at)
    if (time.hasAttribute('data-short')) time.title = `${local} (${time.title})`
    else [time.title, time.textContent] = [time.textContent, local]
  }
}
/** The parts of a page that are refreshed. Each has a stable ID. */
const PARTS = 'main section[id], .acts > [id], #state, #lead, .notice[id]'
/** Parts and rows as the server sent them, because readers and this script change them in the document. */
const sent = new WeakMap()
/** Shows controls that need the script, and remembers the HTML of the server. `html` is the root's. */
function wake(root, html = '') {
  sent.set(root, html)
  for (const one of root.querySelectorAll(`${PARTS}, [data-fresh] tr[data-key]`)) sent.set(one, one.outerHTML)
  localTimes(root)
  for (const one of root.querySelectorAll('[type=button][hidden],[data-all]')) one.hidden = false
}
wake(document)
const live = document.body.appendChild(make('p', { className: 'vh', role: 'status' }))
/** Briefly shows and announces the result of a click on the button. */
function say(button, words) {
  button.named ??= [...button.childNodes]
  button.textContent = live.textContent = words
  clearTimeout(button.timer)
  button.timer = setTimeout(() => {
    button.replaceChildren(...button.named)
    live.textContent = ''
  }, DONE_SHOWN_MS)
}

const openMenus = () => document.querySelectorAll('details.menu[open]')
/** Closes a menu or form, and moves the focus to its button if it was inside. */
function close(opened) {
  if (opened?.contains(document.activeElement)) opened.querySelector('summary').focus()
  if (opened) opened.open = false
}

document.addEventListener('click', async ({ target }) => {
  for (const menu of openMenus()) if (!menu.contains(target)) menu.open = false
  if (target.closest('[data-cancel]')) {
    target.form.reset()
    close(target.closest('.act'))
  }
  const opened = target.closest('.act:not([open]) > summary')?.parentElement
  if (opened) setTimeout(() => opened.querySelector('.field :is(input,select,textarea)')?.focus())
  const button = target.closest('[data-copy],[data-copy-text]')
  if (!button) return
  const source = button.dataset.copy
  await navigator.clipboard.writeText(source ? byId(source).textContent : button.dataset.copyText).then(
    () => say(button, 'Copied'),
    () => say(button, 'Select the text and copy it'),
  )
})

document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape') {
    for (const menu of openMenus()) close(menu)
    close(event.target.closest('.act[open]'))
    if (location.hash === '#nav') location.hash = '#main'
  }
  const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)
  if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey || event.altKey || !byId('q')) return
  event.preventDefault()
  byId('q').focus()
})

function release(button) {
  button.disabled = false
  button.removeAttribute('aria-busy')
}
/** The form with unsaved text in an editor or a step. Submitting it counts as saved, except into a frame. */
let unsaved = document.querySelector('form[data-kept]:has(textarea.code,[name=step])')
document.addEventListener('input', ({ target }) => {
  if (target.matches('textarea.code,form:has([name=step]) *')) unsaved = target.form
  const boxes = target.matches('[data-all]') ? target.form.querySelectorAll('td [name=ids]') : []
  for (const box of boxes) box.checked = target.checked
})
addEventListener('beforeunload', (event) => unsaved && event.preventDefault())
/** Disables a clicked button until the next page or file has arrived, or the reader comes back. */
document.addEventListener('submit', ({ target: form, submitter }) => {
  if (form === unsaved && !submitter?.formTarget) unsaved = null
  if (!submitter || submitter.formTarget || form.target) return
  // Only after the form was sent, because a disabled button isn't submitted.
  setTimeout(() => {
    submitter.disabled = true
    submitter.setAttribute('aria-busy', 'true')
    setTimeout(release, form.hasAttribute('data-file') ? DONE_SHOWN_MS : RESPONSE_WAIT_MS, submitter)
  })
})
addEventListener('pageshow', () => document.querySelectorAll('[aria-busy]').forEach(release))
/** Requests a page. Returns it with the server's time, only the time if it is unchanged, or a problem. */
async function ask(url, more) {
  const signal = AbortSignal.timeout(RESPONSE_WAIT_MS)
  try {
    const answer = await fetch(url, { headers: { Accept: 'text/html' }, signal, ...more })
    const now = Date.parse(answer.headers.get('Date'))
    const text = await answer.text()
    if (answer.status === 304) return { now }
    const token = document.querySelector('.who [name=csrf]')?.outerHTML
    const html = text.replace(/(<\/?)live-form\b/g, '$1form').replaceAll('<live-token>', token)
    const page = new DOMParser().parseFromString(html, 'text/html')
    const isPage = answer.status < 500 && page.getElementById('main')
    if (!isPage) return { problem: 'The service returned an error.' }
    if (!answer.headers.has('ETag') && !page.querySelector('.who'))
      return { problem: 'Your session has ended. Sign in again.' }
    if (answer.redirected || !answer.ok) return { problem: 'This page is no longer available. Reload it.' }
    return { page, now }
  } catch {
    return { problem: 'The service isn’t responding.' }
  }
}
/** Shows a warning at the top of a part that it is out of date, or removes it if `words` is empty. */
function warn(part, words) {
  const line = part.querySelector(':scope > .stale')
  if (line?.textContent === words) return
  line?.remove()
  if (words) part.prepend(make('p', { className: 'notice bad stale', role: 'alert', textContent: words }))
}
/** The button that counts the audience. The script hides it and counts after each change. */
const count = document.querySelector('[data-counts]')
let [counting, counted] = [0, new Date()]
async function recount() {
  const turn = ++counting
  const body = new URLSearchParams(new FormData(count.form, count))
  const { page, problem } = await ask(count.form.action, { method: 'POST', body })
  if (turn !== counting) return
  const [section, later] = [byId('audience'), page?.getElementById('audience')]
  if (later) {
    counted = new Date()
    section.replaceWith(document.adoptNode(later))
    live.textContent = later.innerText
  } else {
    const said = problem ?? 'This page is out of date. Reload it.'
    warn(section, `${said} This count is from ${clock(counted)}, before your change.`)
    count.timer = setTimeout(recount, REFRESH_INTERVAL_MS)
  }
}
if (count) count.hidden = true
const preview = document.querySelector('[formtarget]')
/** Shows unsaved text in a new frame, so that it isn't added to the browser's history. */
function showPreview() {
  const [frame] = document.getElementsByName(preview.formTarget)
  frame.replaceWith(Object.assign(frame.cloneNode(), { src: 'about:blank' }))
  preview.click()
}
for (const button of [count, preview])
  document.addEventListener('input', ({ target }) => {
    if (!button || target.form !== button.form) return
    clearTimeout(button.timer)
    button.timer = setTimeout(button === count ? recount : showPreview, QUIET_MS)
  })
/** True for a field that the reader has changed. */
function isChanged({ options, selectedIndex, checked, defaultChecked, value, defaultValue }) {
  const chosen = [...(options ?? [])].findIndex(({ defaultSelected }) => defaultSelected)
  if (options) return selectedIndex !== Math.max(0, chosen)
  return checked !== defaultChecked || value !== defaultValue
}
/** True while the reader types or selects text in a part, or one of its buttons is busy. */
function isInUse(part) {
  const [focused, selection] = [document.activeElement, window.getSelection()]
  return (
    (part.contains(focused) && focused.matches('input,select,textarea,iframe')) ||
    (!selection.isCollapsed && part.contains(selection.anchorNode)) ||
    part.querySelector('[aria-busy]') !== null ||
    [...part.querySelectorAll('input:not([type=hidden]),select,textarea')].some(isChanged)
  )
}
/** Replaces a part or row with its new version. Keeps open details and the focus. */
function swap(part, later) {
  if (later.outerHTML === sent.get(part) || isInUse(part)) return
  const own = document.importNode(later, true)
  const alike = (root, one) =>
    [...root.querySelectorAll(one.tagName)].find(({ textContent }) => textContent === one.textContent)
  for (const summary of own.querySelectorAll('summary')) {
    const former = alike(part, summary)
    if (former) summary.parentElement.open = former.parentElement.open
  }
  const focused = part.contains(document.activeElement) && document.activeElement
  part.replaceWith(own)
  wake(own, later.outerHTML)
  if (focused) (alike(own, focused) ?? byId('main')).focus({ preventScroll: true })
}
/** Inserts a new part next to the neighbour that it has in the new page. */
function place(later) {
  const own = document.importNode(later, true)
  const known = (step, one = later[step]) => one && (byId(one.id) ?? known(step, one[step]))
  const [next, former] = [known('nextElementSibling'), known('previousElementSibling')]
  if (next) next.before(own)
  else if (former) former.after(own)
  else document.querySelector(later.closest('.acts') ? '.acts' : 'main').append(own)
  wake(own, later.outerHTML)
}
const mapRows = (part) =>
  new Map([...part.querySelectorAll('tr[data-key]')].map((tr) => [tr.dataset.key, tr]))
/** Updates the rows of a list in place. A link shows the number of new and removed rows. */
function freshen(section, later) {
  const [known, now] = [mapRows(section), mapRows(later)]
  for (const [key, row] of known) if (now.has(key)) swap(row, now.get(key))
  const seen = [...now.keys()].findIndex((key) => known.has(key))
  const added = seen === -1 ? now.size : seen
  const gone = [...known.keys()].filter((key) => !now.has(key)).length - added
  const words = [added && `${added}${seen === -1 ? ' or more' : ''} new`, gone > 0 && `${gone} removed`]
  const said = words.filter(Boolean).join(', ')
  const textContent = said && `${said} – show`
  const line = section.querySelector('.fresh')
  if ((line?.textContent ?? '') === textContent) return
  line?.remove()
  if (said === '') return
  section.prepend(make('p', { className: 'fresh', role: 'status' }))
  section.firstChild.append(make('a', { href: '', className: 'button small', textContent }))
}
/** Applies a new version of the page. */
function follow(page) {
  document.title = page.title
  for (const later of page.querySelectorAll(PARTS)) if (!byId(later.id)?.matches(PARTS)) place(later)
  for (const part of document.querySelectorAll(PARTS)) {
    const found = page.getElementById(part.id)
    const later = found?.matches(PARTS) && found
    if (later && part.querySelector('[data-fresh]')) freshen(part, later)
    else if (later) swap(part, later)
    else if (!isInUse(part)) part.remove()
  }
  if (!page.getElementById('updates')) byId('updates').remove()
  // A part in use isn't replaced, so the page doesn't match the new ETag yet.
  const isWhole = ![...document.querySelectorAll(PARTS)].some(isInUse)
  byId('main').dataset.tag = isWhole ? page.getElementById('main').dataset.tag : ''
}
const UNITS = { year: 31_536_000, month: 2_592_000, day: 86_400, hour: 3_600, minute: 60, second: 1 }
const relative = new Intl.RelativeTimeFormat('en')
/** Updates the ages on an unchanged page by the server's time, in the format of components/cell.ts. */
function showAges(now) {
  for (const time of document.querySelectorAll('main time[datetime]')) {
    const aged = time.dataset.short === '' ? time : time.parentElement.querySelector('time + .age')
    const seconds = Math.trunc((Date.parse(time.dateTime) - now) / 1_000)
    const [unit, size] = Object.entries(UNITS).find(([, least]) => Math.abs(seconds) >= least) ?? []
    const words = Math.abs(seconds) < 5 ? 'just now' : relative.format(Math.trunc(seconds / size), unit)
    if (aged && aged.textContent !== words) aged.textContent = words
  }
}
const isPaused = () => sessionStorage.paused === 'yes'
let [isAsking, seen] = [false, new Date()]
/** Shows the time of the last update, and the problem if the page couldn't be refreshed. */
function showAge(problem) {
  byId('pause').setAttribute('aria-pressed', isPaused())
  byId('pause').textContent = isPaused() ? 'Start refreshing' : 'Stop refreshing'
  byId('updated').textContent = `Updated ${clock(seen)}`
  warn(byId('main'), problem && `${problem} This page is from ${clock(seen)}.`)
}

async function refresh() {
  if (isAsking || !byId('updates') || isPaused() || document.visibilityState !== 'visible') return
  isAsking = true
  const headers = { Accept: FRAGMENT, 'If-None-Match': `"${byId('main').dataset.tag}"` }
  const { page, now, problem } = await ask(location.href, { headers })
  isAsking = false
  if (!problem) seen = new Date()
  showAge(problem)
  if (page) follow(page)
  else if (now) showAges(now)
}

if (byId('updates')) {
  byId('updates').hidden = false
  byId('main').tabIndex = -1
  showAge()
  byId('pause').addEventListener('click', () => {
    sessionStorage.paused = isPaused() ? 'no' : 'yes'
    showAge()
    refresh()
  })
  setInterval(refresh, REFRESH_INTERVAL_MS)
  for (const event of ['online', 'offline', 'visibilitychange']) addEventListener(event, refresh)
}
