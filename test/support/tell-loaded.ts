/** Preloaded into our processes: reports loaded modules to the parent on request, Node's included. */
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
