/** Fills the names in braces of a text, such as `No topic {id} in this team.` */

/** The names in braces of a text. `{{name}}` is a variable of a template, and stays as it is. */
type Names<Text extends string> = Text extends `${string}{${infer Name}}${infer Rest}`
  ? (Name extends `{${string}` ? never : Name) | Names<Rest>
  : never

/** Fills each name with its value. Values are not searched for names. */
export const fill = <Text extends string>(
  text: Text,
  values: Readonly<Record<Names<Text>, string | number>>,
): string => text.replace(/(?<!\{)\{(\w+)\}/g, (_, name: Names<Text>) => String(values[name]))
