/**
 * Preloaded into each test file (test/run.ts): removes unused hooks of tap. tap hooks module loading for
 * mocks and coverage, which is a third of a file's start, because a file loads a thousand modules. It watches
 * every promise and callback to attribute uncaught errors to a test, for up to a seventh of a file's CPU
 * time. Such an error still ends and fails the file's process, with a stack. tap also makes Node read source
 * maps for the stack of each assertion. Our files don't have any, because Node keeps positions when it strips
 * types.
 */
import asyncHooks from 'node:async_hooks'
import module, { syncBuiltinESMExports } from 'node:module'

module.registerHooks = () => ({ deregister() {} })
const unhooked: asyncHooks.AsyncHook = { enable: () => unhooked, disable: () => unhooked }
asyncHooks.createHook = () => unhooked
syncBuiltinESMExports()
process.setSourceMapsEnabled = () => {}
