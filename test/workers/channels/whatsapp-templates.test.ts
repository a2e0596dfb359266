/**
 * The template examples of Meta's documents are created, synced with a simulated Cloud API and sent through
 * our API. https://developers.facebook.com/documentation/business-messaging/whatsapp/templates/components,
 * and its pages on marketing, utility and authentication templates.
 */
import { showWhatsappTemplate } from '../../../db/messages/whatsapp/save-template.ts'
import { awaitSync, requestSync } from '../../../db/messages/whatsapp/sync-templates.ts'
import { startCloud } from '../../support/cloud.ts'
import { world } from '../../support/service.ts'
import t from '../../support/tap.ts'
import { type Json, makeTemplate } from '../../support/whatsapp.ts'
import { startWorker, until } from '../../support/worker.ts'

type Example = {
  category?: 'MARKETING' | 'AUTHENTICATION'
  components: Json[]
  parameters?: Record<string, string>
  /** The sent components. Null if it can't be sent. */
  sent: Json[] | null
}

const text = (value: string, name?: string) => ({
  type: 'text',
  ...(name ? { parameter_name: name } : {}),
  text: value,
})
const header = (...parameters: Json[]) => ({ type: 'header', parameters })
const body = (...parameters: Json[]) => ({ type: 'body', parameters })
const button = (sub_type: string, index: number, parameter: Json) => ({
  ...{ type: 'button', sub_type, index: String(index), parameters: [parameter] },
})
const BODY = { type: 'BODY', text: 'Thank you for your order.' }
const FOOTER = { type: 'FOOTER', text: 'Lucky Shrub' }
const buttons = (...list: Json[]) => ({ type: 'BUTTONS', buttons: list })
const quick = (label: string) => ({ type: 'QUICK_REPLY', text: label })
const link = 'https://files.example.com/file'
const handle = { header_handle: ['4::aW...'] }
const PLACE = {
  ...{ 'header:1': '37.44211676562361', 'header:2': '-122.16155960083124' },
  ...{ 'header:3': 'Philz Coffee', 'header:4': '101 Forest Ave, Palo Alto, CA 94301' },
}
const SENT_PLACE = {
  type: 'location',
  location: {
    ...{ latitude: '37.44211676562361', longitude: '-122.16155960083124' },
    ...{ name: 'Philz Coffee', address: '101 Forest Ave, Palo Alto, CA 94301' },
  },
}
const password = (otp: Json) => ({
  category: 'AUTHENTICATION' as const,
  components: [
    { type: 'BODY', add_security_recommendation: true },
    { type: 'FOOTER', code_expiration_minutes: 5 },
    buttons({ type: 'OTP', ...otp }),
  ],
  parameters: { 'body:1': '123456', 'url:1': '123456' },
  sent: [body(text('123456')), button('url', 0, text('123456'))],
})
const unsupported = (...components: Json[]): Example => ({ components: [BODY, ...components], sent: null })

const EXAMPLES: Record<string, Example> = {
  'text header with a name': {
    components: [{ type: 'HEADER', format: 'TEXT', text: 'Our new sale starts {{sale_start_date}}!' }, BODY],
    parameters: { 'header:1': 'December 1st' },
    sent: [header(text('December 1st', 'sale_start_date'))],
  },
  'text header with a number': {
    components: [{ type: 'HEADER', format: 'TEXT', text: 'Our {{1}} is on!' }, BODY],
    parameters: { 'header:1': 'Summer Sale' },
    sent: [header(text('Summer Sale'))],
  },
  'image header': {
    components: [{ type: 'HEADER', format: 'IMAGE', example: handle }, BODY],
    parameters: { 'header:1': link },
    sent: [header({ type: 'image', image: { link } })],
  },
  'video header': {
    components: [{ type: 'HEADER', format: 'VIDEO', example: handle }, BODY],
    parameters: { 'header:1': link },
    sent: [header({ type: 'video', video: { link } })],
  },
  'document header': {
    components: [{ type: 'HEADER', format: 'DOCUMENT', example: handle }, BODY],
    parameters: { 'header:1': link, 'header:2': 'Invoice 17.pdf' },
    sent: [header({ type: 'document', document: { link, filename: 'Invoice 17.pdf' } })],
  },
  'location header': {
    components: [{ type: 'HEADER', format: 'LOCATION' }, BODY],
    parameters: PLACE,
    sent: [header(SENT_PLACE)],
  },
  'body with names': {
    components: [{ type: 'BODY', text: 'Thank you, {{first_name}}! Your order number is {{order_number}}.' }],
    parameters: { 'body:1': 'Pablo', 'body:2': '860198-230332' },
    sent: [body(text('Pablo', 'first_name'), text('860198-230332', 'order_number'))],
  },
  'body with numbers': {
    components: [{ type: 'BODY', text: 'Thank you, {{1}}! Your order number is {{2}}.' }],
    parameters: { 'body:1': 'Pablo', 'body:2': '860198-230332' },
    sent: [body(text('Pablo'), text('860198-230332'))],
  },
  footer: { components: [BODY, FOOTER], sent: [] },
  'phone number button': {
    components: [BODY, buttons({ type: 'PHONE_NUMBER', text: 'Call', phone_number: '+15550051310' })],
    sent: [],
  },
  'quick-reply buttons': { components: [BODY, buttons(quick('Unsubscribe'), quick('Stop'))], sent: [] },
  'static URL button': {
    components: [BODY, buttons({ type: 'URL', text: 'Shop', url: 'https://www.example.com/shop' })],
    sent: [],
  },
  'dynamic URL button': {
    components: [
      BODY,
      buttons({ type: 'URL', text: 'Shop', url: 'https://www.example.com/shop?promo={{1}}' }),
    ],
    parameters: { 'url:1': 'summer2023' },
    sent: [button('url', 0, text('summer2023'))],
  },
  'URL button with a name': {
    components: [
      BODY,
      buttons({ type: 'URL', text: 'Shop', url: 'https://www.example.com/order?name={{customer_name}}' }),
    ],
    parameters: { 'url:1': 'Gon%C3%A7alves' },
    sent: [button('url', 0, text('Gon%C3%A7alves', 'customer_name'))],
  },
  'copy code button': {
    category: 'MARKETING',
    components: [BODY, buttons({ type: 'COPY_CODE', example: '250FF' })],
    parameters: { 'code:1': '25OFF' },
    sent: [button('copy_code', 0, { type: 'coupon_code', coupon_code: '25OFF' })],
  },
  'copy code authentication': password({ otp_type: 'COPY_CODE', text: 'Copy Code' }),
  'one-tap authentication': password({ otp_type: 'ONE_TAP', autofill_text: 'Autofill' }),
  'zero-tap authentication': password({ otp_type: 'ZERO_TAP', zero_tap_terms_accepted: true }),
  'marketing: seasonal promotion': {
    category: 'MARKETING',
    components: [
      { type: 'HEADER', format: 'TEXT', text: 'Our {{1}} is on!' },
      {
        type: 'BODY',
        text: 'Shop now through {{1}} and use code {{2}} to get {{3}} off of all merchandise.',
      },
      { type: 'FOOTER', text: 'Use the buttons below to manage your marketing subscriptions' },
      buttons(quick('Unsubscribe from Promos'), quick('Unsubscribe from All')),
    ],
    parameters: {
      'header:1': 'Summer Sale',
      'body:1': 'the end of August',
      'body:2': '25OFF',
      'body:3': '25%',
    },
    sent: [header(text('Summer Sale')), body(text('the end of August'), text('25OFF'), text('25%'))],
  },
  'marketing: coupon code': {
    category: 'MARKETING',
    components: [
      { type: 'HEADER', format: 'TEXT', text: 'Our Fall Sale is on!' },
      {
        type: 'BODY',
        text: 'Shop now through {{1}} and use code {{2}} to get {{3}} off of all merchandise!',
      },
      buttons(quick('Unsubscribe'), { type: 'COPY_CODE', example: '250FF' }),
    ],
    parameters: { 'body:1': 'November', 'body:2': '25OFF', 'body:3': '25%', 'code:1': '25OFF' },
    sent: [
      body(text('November'), text('25OFF'), text('25%')),
      button('copy_code', 1, { type: 'coupon_code', coupon_code: '25OFF' }),
    ],
  },
  'utility: order confirmation': {
    components: [
      { type: 'HEADER', format: 'DOCUMENT', example: handle },
      { type: 'BODY', text: 'Thank you for your order, {{1}}! Your order number is {{2}}.' },
      buttons(
        { type: 'PHONE_NUMBER', text: 'Call', phone_number: '+15550051310' },
        { type: 'URL', text: 'Contact Support', url: 'https://www.example.com/support' },
      ),
    ],
    parameters: { 'header:1': link, 'header:2': 'Order.pdf', 'body:1': 'Pablo', 'body:2': '860198-230332' },
    sent: [
      header({ type: 'document', document: { link, filename: 'Order.pdf' } }),
      body(text('Pablo'), text('860198-230332')),
    ],
  },
  'utility: order delivery update': {
    components: [
      { type: 'HEADER', format: 'LOCATION' },
      { type: 'BODY', text: 'Good news {{1}}! Your order #{{2}} is on its way to the location above.' },
      { type: 'FOOTER', text: 'To stop receiving delivery updates, tap the button below.' },
      buttons(quick('Stop Delivery Updates')),
    ],
    parameters: { ...PLACE, 'body:1': 'Mark', 'body:2': '566701' },
    sent: [header(SENT_PLACE), body(text('Mark'), text('566701'))],
  },
  'utility: reservation': {
    components: [
      { type: 'HEADER', format: 'IMAGE', example: handle },
      { type: 'BODY', text: '*You are all set!* Your reservation at {{venue}} is on {{day}}.' },
      FOOTER,
      buttons(
        { type: 'URL', text: 'Change reservation', url: 'https://www.example.com/reservations' },
        { type: 'PHONE_NUMBER', text: 'Call us', phone_number: '+15550051310' },
        quick('Cancel reservation'),
      ),
    ],
    parameters: { 'header:1': link, 'body:1': 'Lucky Shrub', 'body:2': 'Saturday' },
    sent: [
      header({ type: 'image', image: { link } }),
      body(text('Lucky Shrub', 'venue'), text('Saturday', 'day')),
    ],
  },
  'voice call button': unsupported(buttons({ type: 'VOICE_CALL', text: 'Call now' })),
  'flow button': unsupported(buttons({ type: 'FLOW', text: 'Sign up', flow_id: '1' })),
  'catalog button': unsupported(buttons({ type: 'CATALOG', text: 'View catalog' })),
  'multi-product message': unsupported(buttons({ type: 'MPM', text: 'View items' })),
  'single-product message': unsupported(buttons({ type: 'SPM', text: 'View' })),
  'media carousel': unsupported({ type: 'CAROUSEL', cards: [] }),
  'product carousel': unsupported({ type: 'CAROUSEL', cards: [] }),
  'limited-time offer': unsupported({
    type: 'LIMITED_TIME_OFFER',
    limited_time_offer: { text: 'Expiring!' },
  }),
  'call permission request': unsupported({ type: 'CALL_PERMISSION_REQUEST' }),
  'GIF header': unsupported({ type: 'HEADER', format: 'GIF', example: handle }),
}

t.test('creates, syncs and sends 60 % of Meta’s examples', async (t) => {
  const { service, database, team, call } = await world(t, { team: { plan: 'pro' } })
  const definitions = Object.values(EXAMPLES).map(({ category = 'UTILITY', components }, index) => ({
    ...{ id: String(index), name: `example_${index}`, language: 'en_US', category, components },
  }))
  const templates = definitions.map((definition) => ({ ...definition, status: 'APPROVED' }))
  const ids: string[] = []
  for (const definition of definitions) ids.push((await makeTemplate(service, team.id, definition)).id)
  const cloud = await startCloud(t, { templates })
  await startWorker(t, service, { whatsapp: cloud.delivery })
  const { queue, clock } = service.deps
  const asked = await requestSync({ tx: database, now: clock(), actor: null, queue }, team.id)
  t.same((await awaitSync(database, team.id, asked)).missing, [])
  const sendable = Object.entries(EXAMPLES).filter(([, { sent }]) => sent !== null)
  t.ok(sendable.length >= 0.6 * definitions.length, `${sendable.length} of ${definitions.length}`)
  for (const [index, [name, { parameters = {}, sent }]] of Object.entries(EXAMPLES).entries()) {
    const template_id = ids[index] ?? ''
    const message = { template_id, to: ['+15555550101'], parameters }
    const { status, body } = await call('POST', '/v1/whatsapp/messages', { key: team.key, body: message })
    if (sent === null) {
      t.match({ status, body }, { status: 400, body: { error: { code: 'template_unsupported' } } }, name)
      continue
    }
    t.equal(status, 201, `${name}: ${JSON.stringify(body)}`)
    const ours = ({ body }: { body: { template?: { name?: string } } }) =>
      body.template?.name === `example_${index}`
    await until(`${name} is sent`, () => cloud.messages().some(ours))
    t.strictSame(cloud.messages().find(ours)?.body.template?.components ?? [], sent, name)
  }
})

t.test('a template is shown with the name of each variable', async (t) => {
  const { service, database, team } = await world(t)
  const { components } = EXAMPLES['utility: reservation'] ?? {}
  const { id } = await makeTemplate(service, team.id, { name: 'a', language: 'en', components })
  t.match(await showWhatsappTemplate(database, team.id, id), {
    ...{ id, slots: ['header:1', 'body:1', 'body:2'], supported: true, quality: null },
    parameters: [
      { key: 'header:1', name: null },
      { key: 'body:1', name: 'venue' },
      { key: 'body:2', name: 'day' },
    ],
  })
})
