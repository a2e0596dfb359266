/** Preloaded into our processes. Reports the loaded modules, including Node's, to the parent on request. */
import module from 'node:module'

const { moduleLoadList } = process as typeof process & { moduleLoadList: string[] }
const files: string[] = []

module.registerHooks({
  load(url, context, next) {
    files.push(url)
    return next(url, context)
  },
})
process.on('message', () => process.send?.([...moduleLoadList, ...files]))
