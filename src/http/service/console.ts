import { empty, json } from '../routing/answer.js'
import { definePageRoute, type Route } from '../routing/route.js'
import { openedRoute } from '../jobs/link-routes.js'
import { deviceFileRoute } from './device-files.js'
import { type PageText, pageAnswer } from './page.js'
import { consoleParts, pageAssetRoute } from './page-assets.js'
import { sessionRoutes } from './session-routes.js'

const page: PageText = {
  name: 'console',
  title: 'stemwork',
  style: 'console.css',
  script: 'app.js',
  manifest: 'app.webmanifest',
  // Separation within the page: WebAssembly, in a worker.
  policy: { script: "'wasm-unsafe-eval'", worker: "'self'" },
  withoutScript: [
    'This page needs JavaScript to play and mix audio. Turn it on, then reload the page.',
    'Without it, use the <a href="docs">HTTP interface</a> or run <code>npx stemwork separate ' +
      'song.mp3</code> in a terminal.',
  ],
}

/**
 * `/console`: a page to use the service with. It has no rights of its own: it calls the public interface with the key
 * that a person enters, which a cookie keeps.
 */
export const consoleRoutes: readonly Route[] = [
  definePageRoute({
    route: 'GET /console',
    operation: 'getConsole',
    access: 'open',
    atRoot: true,
    async handle(call) {
      // The page's parts lie below the base path.
      const isPlain = !call.request.address().pathname.endsWith('/')
      if (call.isAtRoot && isPlain) return empty(307, { location: `${call.baseUrl}/console` })
      return pageAnswer(call, page)
    },
  }),
  // What the page needs without a network.
  definePageRoute({
    route: 'GET /console/parts',
    operation: 'getConsoleParts',
    access: 'open',
    handle: async () => json(await consoleParts(), { headers: { 'cache-control': 'no-cache' } }),
  }),
  pageAssetRoute('console', 'getConsoleAsset'),
  ...sessionRoutes,
  openedRoute,
  deviceFileRoute,
]
