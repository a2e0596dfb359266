/** The API's descriptions in the memory of a process. They are rendered once a day. Types only. */
export type Drawn = { body: string; headers: Record<string, string> }

export type Docs = {
  openapi(): Promise<Drawn>
  page(): Promise<Drawn>
  postman(): Promise<Drawn>
  llms(): Promise<Drawn>
  /** Returns a guide as Markdown, or null for an unknown ID. */
  guide(id: string): Promise<Drawn | null>
}

/** The dependencies of their routes. `dashboard` is null if it is disabled. */
export type DocsDeps = { docs: Docs; dashboard: object | null }
