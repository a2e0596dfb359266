/**
 * Preloaded into each test file (test/run.ts): removes unused hooks of tap. It hooks module loading for mocks
 * and coverage. A test file loads a thousand modules, so that takes a third of its start. It watches every
 * promise and callback, to attribute uncaught errors to a test, for up to a seventh of a file's CPU time.
 * Such an error still ends and fails the file's process, with a stack. And it makes Node read all source maps
 * for the stack of each assertion. Ours have none, because Node keeps positions when it strips types.
 */
import asyncHooks from 'node:async_hooks'
import module, { syncBuiltinESMExports } from 'node:module'

module.registerHooks = () => ({ deregister() {} })
const unhooked: asyncHooks.AsyncHook = { enable: () => unhooked, disable: () => unhooked }
asyncHooks.createHook = () => unhooked
syncBuiltinESMExports()
process.setSourceMapsEnabled = () => {}
