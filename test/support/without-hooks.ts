/**
 * Loaded before each test file (test/run.ts). tap hooks itself into the loading of every module, to mock them and to
 * know what covers what; we do neither, and a test file loads a thousand modules: a third of its start.
 */
import module, { syncBuiltinESMExports } from 'node:module'

module.registerHooks = () => ({ deregister() {} })
syncBuiltinESMExports()
