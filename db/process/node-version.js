// Prints an error if Node is too old for .ts files. Plain JavaScript, because it runs before all other code.
if (Number.parseInt(process.versions.node, 10) < 24) {
  process.stderr.write(
    `Heliograph needs Node 24 or newer, and this is ${process.version}. For npm's own scripts, npm ci with development\n` +
      'dependencies brings the right one along; elsewhere install it, or put it first on PATH.\n',
  )
  process.exit(1)
}
