/** Jobs that are compared at once: more curves than this cannot be told apart. */
export const MOST_COMPARED = 12;
