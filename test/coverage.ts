import { takeCoverage } from 'node:v8'
import { afterAll } from 'vitest'

// vitest ends its processes before Node writes their coverage by itself.
afterAll(() => takeCoverage())
