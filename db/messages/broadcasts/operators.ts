/** How a condition of a broadcast compares a contact's property. */
export const OPERATORS = ['eq', 'ne', 'in', 'exists', 'missing', 'contains', 'gt', 'lt'] as const
