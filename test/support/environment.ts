/** The environment of processes in tests, which only has the settings that a test sets. */

export const SECRET_KEY = 'a secret key for tests, thirty-two characters or more'

/** Returns only PATH and the folder of compiled modules, without settings. */
export function bareEnvironment(): Record<string, string> {
  const { PATH = '', NODE_COMPILE_CACHE } = process.env
  return NODE_COMPILE_CACHE ? { PATH, NODE_COMPILE_CACHE } : { PATH }
}

/** Returns the lines of an error about settings, without its headline. None if the settings are valid. */
export function faultLines(read: () => unknown): string[] {
  try {
    read()
    return []
  } catch (error) {
    const [, ...lines] = String(error).split('\n')
    return lines.map((line) => line.trim())
  }
}
