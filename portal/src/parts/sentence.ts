/** A reason of the service's as a heading: its first word with a capital, but for a name such as n1 or fit-2. */
export function sentence(reason: string): string {
  return /^[a-z]+(?=[\s,:;.]|$)/.test(reason) ? reason[0]!.toUpperCase() + reason.slice(1) : reason;
}
