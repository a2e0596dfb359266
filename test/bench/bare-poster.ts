/** Posts a body to a URL with fetch, four requests at a time, and prints the accepted requests per second. */
const [url = '', count, body] = process.argv.slice(2)

async function post(times: number): Promise<number> {
  const started = performance.now()
  let left = times
  const loop = async () => {
    while (left-- > 0) await (await fetch(url, { method: 'POST', body: body ?? '' })).arrayBuffer()
  }
  await Promise.all(Array.from({ length: 4 }, loop))
  return (times * 1_000) / (performance.now() - started)
}

await post(200)
const rate = await post(Number(count))
process.send?.(rate, () => process.disconnect())
