// Loader hooks of `runner.mjs`: give the build's files new URLs in each generation, so that Node.js reloads them.
let build
let generation

export function initialize(data) {
  ;({ build, generation } = data)
}

export async function resolve(specifier, context, next) {
  const resolved = await next(specifier, context)
  const number = Atomics.load(generation, 0)
  if (number === 0 || !resolved.url.startsWith(build)) return resolved
  const url = new URL(resolved.url)
  url.searchParams.set('generation', String(number))
  return { ...resolved, url: url.href }
}
