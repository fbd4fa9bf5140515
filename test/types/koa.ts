import Koa from 'koa'
import type { Handler } from 'stemwork/http'
import { koaMount, type KoaMiddleware } from 'stemwork/koa'
import { expectType } from './expect-type.js'

declare const handler: Handler
const middleware = koaMount(handler, { path: '/v1' })
expectType<KoaMiddleware>()(middleware)
new Koa().use(middleware)

// @ts-expect-error: a path is text
koaMount(handler, { path: 1 })
