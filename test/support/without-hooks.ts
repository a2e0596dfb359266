/**
 * Loaded before each test file (test/run.ts): leaves out what tap hooks into a process and we do not use. It hooks
 * itself into the loading of every module, to mock them and to know what covers what; a test file loads a thousand
 * modules: a third of its start. And it watches every promise and callback, to know in which test one throws that
 * nobody waits for: up to a seventh of a file's processor time. Such an error ends the file's process all the same,
 * which fails it, and its stack says where it was. And it has Node read the source maps of all modules, for the stack
 * that it takes at each assertion; ours have none, since Node keeps the places of what it strips.
 */
import asyncHooks from 'node:async_hooks'
import module, { syncBuiltinESMExports } from 'node:module'

module.registerHooks = () => ({ deregister() {} })
const unhooked: asyncHooks.AsyncHook = { enable: () => unhooked, disable: () => unhooked }
asyncHooks.createHook = () => unhooked
syncBuiltinESMExports()
process.setSourceMapsEnabled = () => {}
