// Prints an error if Node is too old for .ts files. Plain JavaScript, because it runs before all other code.
if (Number.parseInt(process.versions.node, 10) < 24) {
  process.stderr.write(
    `Heliograph needs Node 24 or later, and this is ${process.version}. For npm scripts, run npm ci with development\n` +
      'dependencies, which contain Node 24. Otherwise, install Node 24, or put it first in PATH.\n',
  )
  process.exit(1)
}
