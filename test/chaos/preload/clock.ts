/** Shifts the process's clock by CHAOS_CLOCK_MS, for `node --import`. Timers aren't affected. */
const wrong = Number(process.env.CHAOS_CLOCK_MS)
const right = Date.now

globalThis.Date = new Proxy(Date, {
  construct: (target, given: [], made) =>
    Reflect.construct(target, given.length === 0 ? [right() + wrong] : given, made),
  get: (target, name) => (name === 'now' ? () => right() + wrong : Reflect.get(target, name)),
  apply: () => new Date().toString(),
})
