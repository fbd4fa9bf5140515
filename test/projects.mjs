// Which tests run together. Files that are in none of these lists need servers, child processes or audio: `npm test`
// runs them with all others but the daily ones.

/** Rules of the engine and stores in memory: no server, no audio. `npm run test:unit`. */
export const unit = [
  'test/unit/**/*.test.ts',
  'test/engine/**/*.test.ts',
  'test/fetch/**/*.test.ts',
  'test/testing/**/*.test.ts',
  'test/contract/{memory,local-queue,suite}.test.ts',
]

/** What must be true of the sources and types, beside the compiler and the linter. `npm run test:rules`. */
export const rules = ['test/architecture/**/*.test.ts', 'test/package/types.test.ts']

/**
 * These take minutes and need a registry of packages, large weights, or the Python packages of other programs.
 * `npm run test:daily`.
 */
export const daily = [
  'test/platforms/**/*.test.ts',
  'test/models/htdemucs-service.test.ts',
  'test/separation/{peers,museval}.test.ts',
]
