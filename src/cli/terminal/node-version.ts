const needed = 'Install Node 20.19+ or 22.12+.'

/** What to do about a version of Node that package.json excludes; `undefined`: nothing. */
export function nodeVersionRemedy(version = process.versions.node): string | undefined {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const fits = (major === 20 && minor >= 19) || (major === 22 && minor >= 12) || major >= 23
  return fits ? undefined : needed
}
