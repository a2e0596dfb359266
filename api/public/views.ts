/** The pages for recipients. */
import { join } from 'node:path'
import { compileViews } from '../http/views.ts'

export const render = compileViews(join(import.meta.dirname, 'views'))
