#include "tests/support/fake_status.h"

#include "proto/status.h"

enum { USERS = 300 };

static uint32_t dims[4] = {4, 6, 8, 10};

static Quark__Setting **parameters(void) {
  static Quark__Setting setting[2], *all[2] = {&setting[0], &setting[1]};
  for (int i = 0; i < 2; i++) quark__setting__init(&setting[i]);
  setting[0].key = "kappa";
  setting[0].value = "0.125";
  setting[1].key = "csw";
  setting[1].value = "1.769";
  return all;
}

static Quark__DeflationReport *deflation(void) {
  static Quark__DeflationReport d;
  quark__deflation_report__init(&d);
  d.vectors = 60;
  d.lowest = 0.25;
  d.highest = 0.75;
  d.seconds = 12.5;
  d.bytes = 1ull << 33;
  d.restored = true;
  d.origin = "light/low";
  d.trouble = "the disk is full";
  return &d;
}

static Quark__SignReport *sign(void) {
  static Quark__SignReport s;
  quark__sign_report__init(&s);
  s.vectors = 20;
  s.lowest = 0.125;
  s.bound = 0.25;
  s.order = 200;
  s.square = 1e-11;
  s.ginsparg_wilson = 5e-12;
  return &s;
}

Quark__SetupState **fake_setups(void) {
  static Quark__SetupState setup[2], *all[2] = {&setup[0], &setup[1]};
  for (int i = 0; i < 2; i++) quark__setup_state__init(&setup[i]);
  setup[0].name = "first";
  setup[0].state = QUARK__SERVER_STATE__STATE_LOADING;
  setup[0].is_default = 1;
  setup[0].gauge = "a gauge field";
  setup[0].solver = setup[1].solver = "mg";
  setup[0].kappa = 0.125;
  setup[0].queued = 3;
  setup[0].phase = "read";
  setup[0].has_done = setup[0].has_total = setup[1].has_status = 1;
  setup[0].done = 1;
  setup[0].total = 2;
  setup[0].dims = dims;
  setup[0].n_dims = 4;
  setup[0].action = "wilson-clover";
  setup[0].has_site_reals = setup[0].has_columns = true;
  setup[0].site_reals = 48;
  setup[0].columns = 24;
  setup[0].parameter = parameters();
  setup[0].n_parameter = 2;
  setup[0].deflation = deflation();
  setup[1].name = "second";
  setup[1].state = QUARK__SERVER_STATE__STATE_FAILED;
  setup[1].gauge = "another";
  setup[1].status = QK_BAD_CHECKSUM;
  setup[1].text = "the wrong sum";
  return all;
}

static Quark__MultigridReport *multigrid(void) {
  static Quark__MultigridReport mg;
  static Quark__MultigridLevel level, *levels = &level;
  quark__multigrid_level__init(&level);
  level.dims = level.block = dims;
  level.n_dims = level.n_block = 4;
  level.smoother = "ca-gcr";
  level.has_vectors = level.has_galerkin = 1;
  level.vectors = 24;
  level.galerkin = 1e-6;
  quark__multigrid_report__init(&mg);
  mg.level = &levels;
  mg.n_level = 1;
  mg.seconds = 1.5;
  mg.rebuilt = 2;
  mg.checkpoint_trouble = "the disk is full";
  return &mg;
}

static Quark__EigenReport **eigen(void) {
  static Quark__EigenReport low, more, *all[] = {&low, &more};
  low = more = (Quark__EigenReport)QUARK__EIGEN_REPORT__INIT;
  low = (Quark__EigenReport){low.base,
                             .name = "low",
                             .state = QUARK__EIGEN_STATE__EIGEN_KEPT,
                             .kind = QUARK__EIGEN_KIND__EIGEN_GAMMA5,
                             .count = 32,
                             .tol = 1e-7,
                             .user = "ann",
                             .has_lowest = true,
                             .lowest = 0.125,
                             .has_host_bytes = true,
                             .host_bytes = 1ull << 35};
  more.name = "more";
  more.field = "digest:0123456789abcdef";
  return all;
}

static Quark__SetupReport *setup_report(void) {
  static Quark__SetupReport setup;
  quark__setup_report__init(&setup);
  setup.name = "default";
  setup.gauge = "a gauge field";
  setup.solver = setup.precision = "any";
  setup.kappa = 0.125;
  setup.dims = dims;
  setup.n_dims = 4;
  setup.multigrid = multigrid();
  setup.action = "wilson-clover";
  setup.has_site_reals = setup.has_columns = true;
  setup.site_reals = 6;
  setup.columns = 3;
  setup.parameter = parameters();
  setup.n_parameter = 2;
  static Quark__StartClock clock[2], *clocks[2] = {&clock[0], &clock[1]};
  for (int i = 0; i < 2; i++) quark__start_clock__init(&clock[i]);
  clock[0].phase = "read";
  clock[0].seconds = 0.75;
  clock[1].phase = "file";
  clock[1].seconds = 0.5;
  clock[1].has_beside = clock[1].beside = true;
  setup.eigen = eigen();
  setup.n_eigen = 2;
  setup.has_deflate = true;
  setup.deflate = 64;
  setup.deflate_from = "low";
  setup.deflation = deflation();
  setup.sign = sign();
  setup.clock = clocks;
  setup.n_clock = 2;
  return &setup;
}

static Quark__EngineReport *engine_report(void) {
  static Quark__EngineReport engine;
  static Quark__MemoryReport memory;
  static Quark__MemoryShare share, *shares = &share;
  quark__memory_share__init(&share);
  share.name = "solver";
  share.bytes = 1ull << 40;
  quark__memory_report__init(&memory);
  memory.share = &shares;
  memory.n_share = 1;
  memory.serving = 3;
  quark__engine_report__init(&engine);
  engine.memory = &memory;
  engine.grid_why = "least surface";
  return &engine;
}

static Quark__CounterReport *counters_report(void) {
  static Quark__CounterReport counters;
  quark__counter_report__init(&counters);
  counters.converged = 17;
  counters.has_kept = counters.has_kept_bytes = counters.has_contracted = 1;
  counters.kept = 12;
  counters.kept_bytes = 1ull << 40;
  counters.contracted = 5;
  return &counters;
}

static Quark__ActivityReport *activity_report(void) {
  static Quark__ActivityReport now;
  static Quark__SlotReport slot[2], *slots[2] = {&slot[0], &slot[1]};
  static Quark__UserReport user, *users[USERS];
  for (int i = 0; i < 2; i++) quark__slot_report__init(&slot[i]);
  slot[0] = (Quark__SlotReport){.base = slot[0].base,
                                .has_slot = 1,
                                .slot = 5,
                                .job = "c0ffee/7",
                                .user = "ann",
                                .rhs = 3,
                                .iterations = 12,
                                .residual = 1e-3,
                                .tol = 1e-9,
                                .seconds = 0.5};
  slot[1].job = slot[1].user = "";
  quark__user_report__init(&user);
  user.name =
      "a name that is longer than any that the library has room for, which is cut where it ends";
  user.queued = 4;
  user.running = 1;
  user.work = 1e6;
  user.memory = 1ull << 33;
  for (int i = 0; i < USERS; i++) users[i] = &user;
  quark__activity_report__init(&now);
  now.n_slot = 2;
  now.slot = slots;
  now.n_user = USERS;
  now.user = users;
  now.has_users_left_out = 1;
  now.users_left_out = 11;
  return &now;
}

Quark__StatusReport *fake_status(bool activity) {
  static Quark__StatusReport report;
  quark__status_report__init(&report);
  report.state = QUARK__SERVER_STATE__STATE_READY;
  report.version = "fake";
  report.setup = setup_report();
  report.engine = engine_report();
  report.counters = counters_report();
  report.activity = activity ? activity_report() : NULL;
  report.setups = fake_setups();
  report.n_setups = 2;
  return &report;
}
