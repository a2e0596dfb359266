// The container's health check. Exits with 0 if its process is healthy. A web process listens on PORT, a worker on
// HEALTH_PORT.
const answers = async (port) => {
  const { ok } = await fetch(`http://127.0.0.1:${port}/health`)
  if (!ok) throw new Error(`no health at ${port}`)
}

const { PORT, HEALTH_PORT } = process.env
process.exitCode = await Promise.any([answers(PORT), answers(HEALTH_PORT)]).then(
  () => 0,
  () => 1,
)
