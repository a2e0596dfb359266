/** Paths of the operator's pages about teams. */

export const TEAMS_PATH = '/operator/teams'
export const pageOfTeam = (id: string): string => `${TEAMS_PATH}/${id}`
