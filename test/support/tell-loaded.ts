/** Loaded before a process of ours: tells its parent, when asked, what it has loaded, modules of Node's among it. */
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
