import express from 'express'
import { expressMount, type ExpressMiddleware } from 'stemwork/express'
import type { Handler } from 'stemwork/http'
import { expectType } from './expect-type.js'

declare const handler: Handler
const middleware = expressMount(handler)
expectType<ExpressMiddleware>()(middleware)
express().use('/v1', middleware)

// @ts-expect-error: a handler is needed
expressMount()
// @ts-expect-error: the path is the one that `use` is given
expressMount(handler, { path: '/v1' })
