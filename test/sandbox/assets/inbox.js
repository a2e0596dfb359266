// Refreshes the list while the page is visible, shows ages, and confirms the deletion of everything. The page
// works without it.
const PAUSE = 2_000

const ageOf = (iso) => {
  const seconds = Math.max(0, Math.round((Date.now() - Date.parse(iso)) / 1_000))
  if (seconds < 60) return `${seconds} s ago`
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ago`
  return seconds < 86_400 ? `${Math.floor(seconds / 3_600)} h ago` : null
}

const showAges = () => {
  for (const time of document.querySelectorAll('time[data-age]')) {
    const age = ageOf(time.dateTime)
    if (age === null) continue
    time.title = time.dateTime
    time.textContent = age
  }
}

const list = document.querySelector('[data-refresh]')
let shown = null

const refresh = async () => {
  if (document.hidden) return
  const answer = await fetch(list.dataset.refresh + location.search).catch(() => null)
  if (!answer?.ok) return
  const html = await answer.text()
  const focused = list.contains(document.activeElement)
  if (shown !== null && html !== shown && !focused) list.innerHTML = html
  if (!focused) shown = html
  showAges()
}

document.addEventListener('submit', (event) => {
  const question = event.submitter?.dataset.confirm
  if (question && !confirm(question)) event.preventDefault()
})
showAges()
setInterval(refresh, PAUSE)
