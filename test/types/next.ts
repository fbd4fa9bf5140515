import { type NextSettings, withStemwork } from 'stemwork/next'
import { expectType } from './expect-type.js'

const settings = withStemwork({ output: 'standalone' as const, reactStrictMode: true }, '/api/media/**')
expectType<'standalone'>()(settings.output)
expectType<string[] | undefined>()(settings.serverExternalPackages)
expectType<NextSettings>()(withStemwork())

// @ts-expect-error: packages are named in a list
withStemwork({ serverExternalPackages: 'sharp' })
// @ts-expect-error: one glob of routes
withStemwork({}, ['/api/**'])
