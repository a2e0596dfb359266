/**
 * What the pages can do beyond forms and links; each works without it. Copies text, asks before a form is sent, closes
 * menus, and while the page is looked at refreshes the sections that say so every five seconds.
 */
const EVERY = 5_000

for (const button of document.querySelectorAll('[data-copy],[data-copy-text]')) button.hidden = false

document.addEventListener('click', async (event) => {
  const button = event.target.closest('[data-copy],[data-copy-text]')
  for (const menu of document.querySelectorAll('details.menu[open]')) {
    if (!menu.contains(event.target)) menu.open = false
  }
  if (!button) return
  const source = button.dataset.copy
  const text = source ? document.getElementById(source).textContent : button.dataset.copyText
  try {
    await navigator.clipboard.writeText(text)
    button.textContent = 'Copied'
  } catch {
    button.textContent = 'Select the text and copy it'
  }
})

// On a narrow screen the links are one row that scrolls.
document.querySelector('nav [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' })

document.addEventListener('keydown', (event) => {
  if (event.key !== 'Escape') return
  for (const menu of document.querySelectorAll('details.menu[open]')) {
    menu.open = false
    menu.querySelector('summary').focus()
  }
})

document.addEventListener('submit', (event) => {
  const question = event.target.dataset.confirm
  if (!question) return
  if (!window.confirm(question)) return event.preventDefault()
  if (event.target.elements.confirmed) return
  // Without this the server asks, on a page of its own.
  const answer = document.createElement('input')
  Object.assign(answer, { type: 'hidden', name: 'confirmed', value: 'yes' })
  event.target.append(answer)
})

/** Whether somebody is in the middle of something inside a section. */
const isInUse = (section) =>
  section.contains(document.activeElement) || section.contains(window.getSelection()?.anchorNode ?? null)

async function refresh() {
  if (!document.querySelector('section[data-live][id]')) return
  const answer = await fetch(location.href, { headers: { Accept: 'text/html' } })
  if (!answer.ok || answer.redirected) return
  const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html')
  for (const section of document.querySelectorAll('section[data-live][id]')) {
    const other = fresh.getElementById(section.id)
    if (!other || isInUse(section) || other.innerHTML === section.innerHTML) continue
    section.replaceWith(document.adoptNode(other))
    for (const button of other.querySelectorAll('[data-copy],[data-copy-text]')) button.hidden = false
  }
}

if (document.querySelector('section[data-live][id]')) {
  setInterval(() => {
    if (document.visibilityState === 'visible') refresh().catch(() => {})
  }, EVERY)
}
