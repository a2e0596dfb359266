/** Where the dashboard lies: every path of it begins so. */
export const BASE = '/dashboard'
