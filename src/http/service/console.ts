import { empty, json } from '../routing/answer.js'
import { defineRoute, type Route } from '../routing/route.js'
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
  defineRoute({
    route: 'GET /console',
    operation: 'getConsole',
    summary: 'A page to send songs, follow jobs and listen to stems',
    access: 'open',
    atRoot: true,
    answer: { description: 'The page.', contentType: 'text/html' },
    async handle(call) {
      // The page's parts lie below the base path.
      const isPlain = !call.request.address().pathname.endsWith('/')
      if (call.isAtRoot && isPlain) return empty(307, { location: `${call.baseUrl}/console` })
      return pageAnswer(call, page)
    },
  }),
  defineRoute({
    route: 'GET /console/parts',
    operation: 'getConsoleParts',
    summary: 'Names of the parts of the page',
    access: 'open',
    answer: { description: 'What the page needs without a network.' },
    handle: async () => json(await consoleParts(), { headers: { 'cache-control': 'no-cache' } }),
  }),
  pageAssetRoute('console', 'getConsoleAsset'),
  ...sessionRoutes,
  openedRoute,
  deviceFileRoute,
]
