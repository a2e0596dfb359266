/**
 * What the pages can do beyond forms and links; each works without it. Shows times in the reader's zone, copies text,
 * closes menus, shows that a press was heard, asks before an editor's unsaved text is left, counts an audience as it is
 * chosen, and while the page is looked at keeps its live sections up to date every five seconds, until somebody pauses
 * that (WCAG 2.2.2). A list is never replaced under the reader: it says how many rows are new.
 */
const REFRESH_INTERVAL_MS = 5_000
/** How long what a press has done is shown instead of the button's name. */
const DONE_SHOWN_MS = 2_000

const zoned = new Intl.DateTimeFormat(undefined, {
  year: 'numeric',
  month: 'short',
  day: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
})

/** Pages that take or name a time do it in this zone from the next one on (server/guard.ts has the cookie's name). */
const [mark, secure] = location.protocol === 'https:' ? ['__Host-', '; Secure'] : ['', '']
const { timeZone } = zoned.resolvedOptions()
// biome-ignore lint/suspicious/noDocumentCookie: browsers have a Cookie Store on https alone
document.cookie = `${mark}heliograph-zone=${timeZone}; Path=/; SameSite=Lax${secure}`

/** A time's day, in the words of the server (components/cell.ts). */
function dayOf(at) {
  const year = at.getFullYear() === new Date().getFullYear() ? {} : { year: 'numeric' }
  return at.toLocaleDateString('en-GB', { day: 'numeric', month: 'short', ...year })
}

/** Times in the reader's zone, with UTC in the tip; a list's short ones keep their words, but for days. */
function localTimes(root) {
  for (const time of root.querySelectorAll('time[datetime]')) {
    const at = new Date(time.dateTime)
    const local = zoned.format(at)
    if (time.dataset.short === 'day') time.textContent = dayOf(at)
    if (time.hasAttribute('data-short')) time.title = `${local} (${time.title})`
    else {
      time.title = time.textContent
      time.textContent = local
    }
  }
}

/** What works with scripts alone is hidden until they run. */
function wake(root) {
  localTimes(root)
  for (const button of root.querySelectorAll('[data-copy],[data-copy-text]')) button.hidden = false
}

wake(document)

const live = document.createElement('p')
live.className = 'vh'
live.setAttribute('role', 'status')
document.body.append(live)

/** Shows and announces what a press has done, for a moment; the button's name is its own again then. */
function say(button, words) {
  button.named ??= [...button.childNodes]
  button.textContent = live.textContent = words
  clearTimeout(button.timer)
  button.timer = setTimeout(() => {
    button.replaceChildren(...button.named)
    live.textContent = ''
  }, DONE_SHOWN_MS)
}

const closeMenus = (but) => {
  for (const menu of document.querySelectorAll('details.menu[open]'))
    if (!menu.contains(but)) menu.open = false
}

document.addEventListener('click', async (event) => {
  closeMenus(event.target)
  const button = event.target.closest('[data-copy],[data-copy-text]')
  if (!button) return
  const source = button.dataset.copy
  const text = source ? document.getElementById(source).textContent : button.dataset.copyText
  await navigator.clipboard.writeText(text).then(
    () => say(button, 'Copied'),
    () => say(button, 'Select the text and copy it'),
  )
})

document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape') {
    for (const menu of document.querySelectorAll('details.menu[open]')) menu.querySelector('summary').focus()
    closeMenus(null)
    if (location.hash === '#nav') location.hash = '#main'
  }
  const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)
  if (event.key === '/' && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
    const search = document.getElementById('q')
    if (search) event.preventDefault()
    search?.focus()
  }
})

/** How long to wait for the next page: an answer may be a file to save, which leaves this one as it is. */
const NEXT_PAGE_WAIT_MS = 10_000

function release(button) {
  button.disabled = false
  button.removeAttribute('aria-busy')
}

/** A press is shown at once, and counts once, until the next page is there or the reader comes back to this one. */
document.addEventListener('submit', ({ target, submitter }) => {
  if (!submitter || submitter.formTarget || target.target) return
  // Once the form is on its way: a disabled button would not be sent with it.
  setTimeout(() => {
    submitter.disabled = true
    submitter.setAttribute('aria-busy', 'true')
    setTimeout(release, NEXT_PAGE_WAIT_MS, submitter)
  })
})
addEventListener('pageshow', () => document.querySelectorAll('[aria-busy]').forEach(release))

/**
 * An editor's text is not left by mistake, nor one that was refused: what is sent elsewhere than into a frame leaves it
 * on purpose.
 */
let unsaved = document.querySelector('form[data-kept]:has(textarea.code)')
document.addEventListener('input', ({ target }) => {
  if (target.matches('textarea.code')) unsaved = target.form
})
document.addEventListener('submit', ({ target, submitter }) => {
  if (target === unsaved && !submitter?.formTarget) unsaved = null
})
addEventListener('beforeunload', (event) => {
  if (unsaved) event.preventDefault()
})

/** How long nothing may change before an audience is counted. */
const QUIET_BEFORE_COUNT_MS = 400

/** An audience is counted as it is chosen; the button that asks for it is for who has no script. */
const count = document.querySelector('[data-counts]')
let counting = new AbortController()
async function recount() {
  counting.abort()
  counting = new AbortController()
  const { signal } = counting
  const body = new URLSearchParams(new FormData(count.form, count))
  const answer = await fetch(count.form.action, { method: 'POST', body, signal })
  const page = new DOMParser().parseFromString(await answer.text(), 'text/html')
  const section = page.getElementById('audience')
  if (!section) return
  document.getElementById('audience').replaceWith(document.adoptNode(section))
  live.textContent = section.innerText
}
if (count) {
  count.hidden = true
  count.form.addEventListener('input', () => {
    clearTimeout(count.timer)
    count.timer = setTimeout(() => recount().catch(() => {}), QUIET_BEFORE_COUNT_MS)
  })
}

/** Whether somebody is in the middle of something inside a section. */
const isInUse = (section) =>
  section.contains(document.activeElement) || section.contains(window.getSelection()?.anchorNode ?? null)

const keysOf = (section) => [...section.querySelectorAll('tr[data-key]')].map((row) => row.dataset.key)

/** A list keeps its place: rows that are known get their new state, and a link counts what is new or gone. */
function freshen(section, other) {
  const known = keysOf(section)
  const keys = keysOf(other)
  const seen = keys.findIndex((key) => known.includes(key))
  const count = seen === -1 ? keys.length : seen
  for (const row of section.querySelectorAll('tr[data-key]')) {
    const now = other.querySelector(`tr[data-key="${CSS.escape(row.dataset.key)}"]`)
    const [tag, next] = [row, now].map((one) => one?.querySelector('.tag'))
    if (tag && next && tag.textContent !== next.textContent) tag.replaceWith(document.adoptNode(next))
  }
  const gone = known.filter((key) => !keys.includes(key)).length - count
  const words = [count && `${count}${seen === -1 ? ' or more' : ''} new`, gone > 0 && `${gone} gone`]
  const said = words.filter(Boolean).join(', ')
  if (said === '' || section.querySelector('.fresh')?.dataset.said === said) return
  section.querySelector('.fresh')?.remove()
  const line = document.createElement('p')
  line.className = 'fresh'
  line.dataset.said = said
  line.setAttribute('role', 'status')
  const link = document.createElement('a')
  Object.assign(link, { href: location.href.split('#')[0], className: 'button small' })
  link.textContent = `${said} – show`
  line.append(link)
  section.prepend(line)
}

async function refresh() {
  const answer = await fetch(location.href, { headers: { Accept: 'text/html' } })
  if (!answer.ok || answer.redirected) return
  const page = new DOMParser().parseFromString(await answer.text(), 'text/html')
  for (const section of document.querySelectorAll('[data-live][id]')) {
    const other = page.getElementById(section.id)
    if (!other) continue
    if (section.querySelector('[data-fresh]')) freshen(section, other)
    else if (!isInUse(section) && other.outerHTML !== (section.drawn ?? '')) {
      const drawn = other.outerHTML
      section.replaceWith(document.adoptNode(other))
      other.drawn = drawn
      wake(other)
    }
  }
}

const pause = document.getElementById('pause')
if (pause) {
  const show = () => {
    const paused = sessionStorage.paused === 'yes'
    pause.setAttribute('aria-pressed', paused)
    pause.textContent = paused ? 'Resume updates' : 'Pause updates'
  }
  pause.hidden = false
  show()
  pause.addEventListener('click', () => {
    sessionStorage.paused = sessionStorage.paused === 'yes' ? 'no' : 'yes'
    show()
  })
  setInterval(() => {
    if (document.visibilityState === 'visible' && sessionStorage.paused !== 'yes') refresh().catch(() => {})
  }, REFRESH_INTERVAL_MS)
}
