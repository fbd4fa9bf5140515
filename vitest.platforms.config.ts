import { defineConfig } from 'vitest/config'

// What needs a registry of packages and minutes: `npm run test:platforms`.
export default defineConfig({
  test: {
    include: ['test/platforms/**/*.test.ts'],
    globalSetup: 'test/setup.ts',
    // An install of some hundred packages, the build of an application, and a separation.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    pool: 'forks',
    // Each test keeps the processors busy by itself.
    maxWorkers: 1,
  },
})
