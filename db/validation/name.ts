/** Validates the names of teams, keys, templates and topics: one short printable line. */
import { invalidField } from '../errors.ts'
import { codePoints, textFault } from './strings.ts'

const LONGEST_NAME = 200

/** @throws RequestError bad_request if the name can't be stored and printed. DECISIONS: Text. */
export function checkName(name: string): void {
  const problem = nameProblem(name)
  if (problem !== null) throw invalidField('name', problem)
}

function nameProblem(name: string): string | null {
  const fault = textFault(name)
  if (fault) return fault.problem
  if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(name)) return 'must not contain control characters or line breaks'
  if (name.trim() === '') return 'must not be empty'
  return codePoints(name) > LONGEST_NAME ? `must be at most ${LONGEST_NAME} characters long` : null
}
