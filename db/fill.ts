/** Fills the names in braces in a text, such as `No topic {id} in this team.` */

/** The names in braces. `{{name}}` is a template variable and stays. */
type Names<Text extends string> = Text extends `${string}{${infer Name}}${infer Rest}`
  ? (Name extends `{${string}` ? never : Name) | Names<Rest>
  : never

/** A value for each name in a text. */
export type TextValues<Text extends string> = Readonly<Record<Names<Text>, string | number>>

/** Replaces each name with its value. Values aren't searched for names. */
export const fill = <Text extends string>(text: Text, values: TextValues<Text>): string =>
  text.replace(/(?<!\{)\{(\w+)\}/g, (_, name: Names<Text>) => String(values[name]))
