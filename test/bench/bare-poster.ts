/** Posts a body to a URL by fetch, four at once, and prints how many per second were accepted. */
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
