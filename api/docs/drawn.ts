/** The API's descriptions as a process keeps them: rendered once a day, then the same bytes. Types only. */
export type Drawn = { body: string; headers: Record<string, string> }

export type Docs = {
  openapi(): Promise<Drawn>
  page(): Promise<Drawn>
  postman(): Promise<Drawn>
  llms(): Promise<Drawn>
  /** A guide as Markdown; null if there is none with this ID. */
  guide(id: string): Promise<Drawn | null>
}

/** What serving them needs. `dashboard` null: there is none to lead to. */
export type DocsDeps = { docs: Docs; dashboard: object | null }
