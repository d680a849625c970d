// Changes to the text of a job file that is submitted again.

// The key at the top level, and the lines of its value, which are indented behind it.
const NAME = /^(?:name|"name"|'name')[ \t]*:(?:[ \t].*)?(?:\r?\n[ \t]+\S.*)*(?:\r?\n|$)/m;

/** The text without its key `name`: names are unique, and so the service would refuse a second job of that name. */
export function withoutName(text: string): string {
  return text.startsWith('#!') ? text : text.replace(NAME, ''); // A script has its name from its file.
}
