/** The script of the documentation page: copy buttons and a search. The page works without it. */
export const SCRIPT = `
for (const listing of document.querySelectorAll('pre')) {
  const button = document.createElement('button')
  const name = () => { button.textContent = 'Copy' }
  name()
  button.addEventListener('click', async () => {
    const text = listing.querySelector('code').textContent
    button.textContent = await navigator.clipboard.writeText(text).then(() => 'Copied', () => 'Select the text')
    setTimeout(name, 2000)
  })
  const box = document.createElement('div')
  box.className = 'listing'
  listing.replaceWith(box)
  box.append(button, listing)
}
const search = document.getElementById('search')
search.hidden = false
const field = search.querySelector('input')
const status = search.querySelector('output')
const parts = [...document.querySelectorAll('main section, .codes > div')]
const links = new Map([...document.querySelectorAll('nav a[href^="#"]')].map((link) => [link.hash.slice(1), link]))
const idOf = (part) => part.id || part.querySelector('h3')?.id
field.addEventListener('input', () => {
  const words = field.value.toLowerCase().split(/\\s+/).filter(Boolean)
  let found = 0
  for (const part of parts) {
    const text = part.textContent.toLowerCase()
    part.hidden = !words.every((word) => text.includes(word))
    if (!part.hidden) found++
    const link = links.get(idOf(part))
    if (link) link.hidden = part.hidden
  }
  status.textContent = words.length === 0 ? '' : found === 0 ? 'Nothing matches.' : found + ' found'
})
document.addEventListener('keydown', (event) => {
  if (event.key !== '/' || /^(INPUT|TEXTAREA)$/.test(event.target.tagName)) return
  event.preventDefault()
  field.focus()
})
`
