/**
 * Converts between the forms of a number with and without the digit that Brazil, Mexico and Argentina put before
 * mobile numbers. Meta's `wa_id` may use one form, and the client the other. Pure.
 */

const OTHER_FORMS: readonly (readonly [RegExp, string])[] = [
  // Brazil: area code, 9, eight digits that start with 6 to 9.
  [/^\+55(\d{2})9([6-9]\d{7})$/, '+55$1$2'],
  [/^\+55(\d{2})([6-9]\d{7})$/, '+55$19$2'],
  // Mexico.
  [/^\+521(\d{10})$/, '+52$1'],
  [/^\+52(\d{10})$/, '+521$1'],
  // Argentina.
  [/^\+549(\d{10})$/, '+54$1'],
  [/^\+54(\d{10})$/, '+549$1'],
]

/** Returns the forms of a number in E.164 form, itself first. Meta's limits per recipient count for all of them. */
export function listForms(number: string): string[] {
  const [form, other] = OTHER_FORMS.find(([form]) => form.test(number)) ?? []
  return form && other ? [number, number.replace(form, other)] : [number]
}
