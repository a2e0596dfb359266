/** The API's descriptions as a process keeps them: drawn once a day, then the same bytes. Types alone. */
export type Drawn = { body: string; headers: Record<string, string> }

export type Docs = { openapi(): Promise<Drawn>; page(): Promise<Drawn> }

/** What serving them needs. `dashboard` null: there is none to lead to. */
export type DocsDeps = { docs: Docs; dashboard: object | null }
