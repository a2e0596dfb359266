/** The API's descriptions in the memory of a process. They are rendered once a day. Types only. */
export type RenderedDoc = { body: string; headers: Record<string, string> }

export type Docs = {
  openapi(): Promise<RenderedDoc>
  page(): Promise<RenderedDoc>
  postman(): Promise<RenderedDoc>
  llms(): Promise<RenderedDoc>
  /** Returns a guide as Markdown, or null for an unknown ID. */
  guide(id: string): Promise<RenderedDoc | null>
}

/** The dependencies of their routes. `dashboard` is null if it is disabled. */
export type DocsDeps = { docs: Docs; dashboard: object | null }
