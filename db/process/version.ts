/** Which version of the service this process runs: package.json's, the one place that it is written in. */
import about from '../../package.json' with { type: 'json' }

export const VERSION: string = about.version
