import { madeOnce } from './made-once.js'
import { build } from './setup.js'

/** Builds the type declarations, which few tests need. Two builds at a time would leave declarations out of a tarball. */
export function buildDeclarations(): void {
  madeOnce('declarations', () => build())
}
