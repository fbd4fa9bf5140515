const needed = 'Install Node 20.19+ or 22.12+.'

/** Remedy for a Node version that package.json excludes; `undefined` for others. */
export function nodeVersionRemedy(version = process.versions.node): string | undefined {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const fits = (major === 20 && minor >= 19) || (major === 22 && minor >= 12) || major >= 23
  return fits ? undefined : needed
}
